"""Work on what a learner wrote, in a process that can do no harm."""
