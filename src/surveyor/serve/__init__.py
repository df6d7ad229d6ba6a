"""The web page over surveys: `surveyor serve`."""
