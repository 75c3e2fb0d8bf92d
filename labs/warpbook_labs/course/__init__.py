"""What a learner and an author do with labs."""
