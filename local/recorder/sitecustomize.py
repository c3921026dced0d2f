"""Writes down each AWS call of a function on the stand-in; Python imports this by itself where PYTHONPATH names its folder.

What is written: the function, the service, the operation, and the parameters that name a resource. No value is.
"""

import json
import os

FILE = os.environ.get("RECORDED_CALLS")
FUNCTION = os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
NAMES = ("TableName", "IndexName", "QueueUrl", "Bucket", "Key", "Prefix", "FunctionName", "UUID")


def bare(parameters):
    """The parameters of a call that name a resource."""
    found = {name: parameters[name] for name in NAMES if isinstance(parameters.get(name), str)}
    if "TransactItems" in parameters:
        found["parts"] = [
            [kind, part["TableName"]] for item in parameters["TransactItems"] for kind, part in item.items()
        ]
    if isinstance(parameters.get("RequestItems"), dict):
        found["tables"] = sorted(parameters["RequestItems"])
    return found


def _record():
    from botocore.client import BaseClient

    make = BaseClient._make_api_call

    def noted(self, operation, parameters):
        service = self.meta.service_model.service_name
        call = {"function": FUNCTION, "service": service, "operation": operation, **bare(parameters)}
        with open(FILE, "a") as file:
            file.write(json.dumps(call) + "\n")
        return make(self, operation, parameters)

    BaseClient._make_api_call = noted


if FILE and FUNCTION:
    _record()
