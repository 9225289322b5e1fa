"""Several worker processes under one supervisor: it starts them, watches them, starts anew what dies, and ends them."""
