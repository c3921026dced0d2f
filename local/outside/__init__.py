"""Outside systems that misbehave: payments, inventories and notices, with the issuer of tokens; each a process of its own."""
