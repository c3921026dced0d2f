"""How a message looks on its way: parsed strictly, taken out of wrappings, grouped by tenant, its large payload deposited."""
