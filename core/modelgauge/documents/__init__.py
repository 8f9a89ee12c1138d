"""What people read, built once as a document, and its renderers for terminals, pages, GitHub and notebooks."""
