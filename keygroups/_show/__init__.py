"""What a person is shown: tables and pictures."""
