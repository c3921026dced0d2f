// cdk-nag over synthesised templates: `node nag.js NAME=PATH ...` prints its violations as JSON.
// In JavaScript, since the rules that are in no pack are out of Python's reach.
"use strict";

const { App, Stack } = require("aws-cdk-lib");
const { CfnInclude } = require("aws-cdk-lib/cloudformation-include");
const { AwsSolutionsChecks, NagMessageLevel, NagPack, ServerlessChecks, rules } = require("cdk-nag");
// The index of cdk-nag 3.0 forgets this one. It also leaves out LambdaLogLevel, which asks for a property that does not exist.
const { default: LambdaLogging } = require("cdk-nag/lib/rules/lambda/LambdaLogging");

const ADDITIONAL = [
  rules.cloudwatch.CloudWatchAlarmAction,
  rules.cloudwatch.CloudWatchLogGroupEncrypted,
  rules.dynamodb.DynamoDBInBackupPlan,
  rules.lambda.LambdaConcurrency,
  rules.lambda.LambdaEventSourceSQSVisibilityTimeout,
  rules.lambda.LambdaFunctionPublicAccessProhibited,
  rules.lambda.LambdaFunctionUrlAuth,
  rules.lambda.LambdaInsideVPC,
  LambdaLogging,
];

class AdditionalChecks extends NagPack {
  constructor() {
    super();
    this.name = this.packName = "Additional";
  }

  checkResource(node) {
    for (const rule of ADDITIONAL) {
      this.applyRule({ info: `${rule.name} is not met.`, explanation: "", level: NagMessageLevel.ERROR, rule, node });
    }
  }
}

function violations(name, templateFile) {
  const stack = new Stack(new App({ analyticsReporting: false }), "Audited");
  new CfnInclude(stack, "Template", { templateFile });
  return [new AwsSolutionsChecks(), new ServerlessChecks(), new AdditionalChecks()].flatMap((pack) =>
    pack.validateScope(stack).violations.flatMap((violation) =>
      violation.violatingResources.map((resource) => ({
        template: name,
        rule: violation.ruleName,
        resource: resource.constructPath.split("/").pop(),
        message: violation.description,
      })),
    ),
  );
}

const templates = process.argv.slice(2).map((argument) => argument.split("="));
process.stdout.write(JSON.stringify(templates.flatMap(([name, file]) => violations(name, file))));
