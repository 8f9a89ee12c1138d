"""The items of a test: how they are made, answered, judged and measured one by one, and what was scored of them."""
