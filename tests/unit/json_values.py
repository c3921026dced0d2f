"""Values that JSON can tell, as hypothesis makes them."""

from __future__ import annotations

from hypothesis import strategies as st

Json = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**37), 10**37) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
