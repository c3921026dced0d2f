"""The routes of the front door: the one list that API Gateway's, the OpenAPI document's and the tests' are held to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, with parameters in braces."""

    method: str
    path: str

    def __str__(self) -> str:
        """As API Gateway calls it."""
        return f"{self.method} {self.path}"


OPERATIONS = (
    Route("POST", "/operations/{job_type}"),
    Route("GET", "/operations"),
    Route("GET", "/operations/{operation_id}"),
    Route("DELETE", "/operations/{operation_id}"),
)
READS = (
    Route("GET", "/me"),
    Route("GET", "/me/orders/{order_id}"),
    Route("GET", "/me/order-summary"),
    Route("GET", "/me/inventory"),
    Route("GET", "/me/invoices/{invoice_id}"),
)
ROUTES = (*OPERATIONS, *READS)
