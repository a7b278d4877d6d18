"""Programs with transactional clients, one for each family of clients; `families.py` builds them."""
