"""The words every floor shares: frozen values only, standard library only, no behaviour beyond their own arithmetic."""
