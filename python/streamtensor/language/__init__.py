"""Language models: their configurations, one step with its cache, and the texts they generate."""
