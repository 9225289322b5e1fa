"""E-mail reminders: who leaves a cart is reminded of it an hour later, unless the cart is bought before."""

from datetime import timedelta

from dueline import Client, ReceivedJob, Worker

client = Client.connect()
worker = Worker()


def cart_left(cart: str, email: str) -> str:
    """Schedule the reminder of a cart; return its id. However often it is called, there is one a cart."""
    job = client.schedule("emails", {"cart": cart, "to": email}, delay=timedelta(hours=1), key=f"cart-{cart}")
    return job.id


def cart_bought(reminder: str) -> None:
    """Take a reminder back. If it has just left for its queue, the worker skips it."""
    client.cancel(reminder)


@worker.job("emails", once=True)
def remind(job: ReceivedJob) -> None:
    send(to=job.payload["to"], text=f"Your cart {job.payload['cart']} is still there.")


def send(*, to: str, text: str) -> None:
    """Send an e-mail, with whatever you send e-mails."""


if __name__ == "__main__":
    worker.run()
