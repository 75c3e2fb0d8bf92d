"""An assistant of rules without a model, and a stand-in for the page that it needs."""
