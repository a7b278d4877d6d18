"""The APIs of topics and their settings, as clients send them: several topics or resources at once."""
