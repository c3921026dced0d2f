"""The first thing to look at. What it shows is data (see `infra/dashboard/`); here it becomes a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from infra.dashboard.page import widgets
from infra.dashboard.widget import body

if TYPE_CHECKING:
    from infra.dashboard.page import Shown


class Dashboard(Construct):
    """The dashboard of a stack."""

    def __init__(self, scope: Construct, construct_id: str, shown: Shown) -> None:
        super().__init__(scope, construct_id)
        self._resource = cloudwatch.CfnDashboard(self, "Dashboard", dashboard_body="{}")
        self.show(shown)

    def show(self, shown: Shown) -> None:
        """Show this, and nothing of before."""
        stack = Stack.of(self)
        self._resource.dashboard_body = stack.to_json_string(body(widgets(shown), stack.region))
