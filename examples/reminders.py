"""E-mail reminders: who leaves a cart is reminded of it an hour later, unless the cart is bought before.

Reminders and receipts are two kinds of jobs of one queue, each with its own handler and retries.
"""

from contextlib import suppress
from datetime import timedelta

from dueline import Client, JobNotFound, ReceivedJob, Retries, Worker

client = Client.connect()
worker = Worker()


def cart_left(cart: str, email: str) -> str:
    """Schedule the reminder of a cart; return its id. However often it is called, there is one a cart."""
    reminder = {"cart": cart, "to": email}
    return client.schedule("emails", reminder, delay=timedelta(hours=1), key=f"cart-{cart}", kind="reminder").id


def cart_bought(cart: str, email: str) -> None:
    """Take the reminder back, and send a receipt. If it has just left for its queue, the worker skips it."""
    with suppress(JobNotFound):  # bought at once, and never left
        client.cancel(queue="emails", key=f"cart-{cart}")
    client.schedule("emails", {"cart": cart, "to": email}, key=f"receipt-{cart}", kind="receipt")


@worker.job("emails", kind="reminder", once=True)
def remind(job: ReceivedJob) -> None:
    send(to=job.payload["to"], text=f"Your cart {job.payload['cart']} is still there.")


@worker.job("emails", kind="receipt", retry=Retries(attempts=8, first=2, factor=2, most=600))
def confirm(job: ReceivedJob) -> None:
    send(to=job.payload["to"], text=f"Thank you for buying cart {job.payload['cart']}.")


def send(*, to: str, text: str) -> None:
    """Send an e-mail, with whatever you send e-mails."""


if __name__ == "__main__":
    worker.run()
