"""Single jobs as the operator sees and changes them, whatever their owner."""
