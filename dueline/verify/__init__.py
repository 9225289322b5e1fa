"""What proves, in the user's own account, each promise and each assumption about AWS that a local AWS cannot show."""
