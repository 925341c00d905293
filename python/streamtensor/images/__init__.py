"""Networks for images by name, and the classes of pictures in a folder."""
