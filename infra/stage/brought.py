"""What a user brings along instead of letting the stack make it: a network, a key, a topic. Settings of a stage.

What the stack needs of each stands in `docs/how-to/bring-your-own.md`: it changes nothing of what it did not make.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shared.errors import DeclarationError

SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]
KEY_ARN = r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[A-Za-z0-9-]+$"
TOPIC_ARN = (
    r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]+$"  # no FIFO topic: CloudWatch does not publish to one
)


class ExistingNetwork(BaseModel):
    """A VPC with subnets, a subnet of each kind for each zone.

    Attributes:
        vpc: its id.
        zones: availability zones of the subnets, in their order.
        isolated: ids of the subnets of the cache, and of functions that call nothing outside AWS.
        egress: ids of the subnets of functions that do; none if no worker does.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    vpc: str = Field(pattern=r"^vpc-[0-9a-f]{8,17}$")
    zones: tuple[str, ...] = Field(min_length=2)
    isolated: tuple[SubnetId, ...]
    egress: tuple[SubnetId, ...] = ()

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if len(set(self.zones)) != len(self.zones):
            message = f"network: zones={list(self.zones)} names one twice: name each zone once."
            raise DeclarationError(message)
        for kind, subnets in (("isolated", self.isolated), ("egress", self.egress)):
            if len(subnets) != len(self.zones) and (kind == "isolated" or subnets):
                message = (
                    f"network: {kind} has {len(subnets)} subnets for {len(self.zones)} zones: give one subnet for each"
                    " zone, in the order of `zones`."
                )
                raise DeclarationError(message)
        if len({*self.isolated, *self.egress}) != len(self.isolated) + len(self.egress):
            message = "network: a subnet is named twice: each is of one zone, and isolated or not."
            raise DeclarationError(message)
        return self
