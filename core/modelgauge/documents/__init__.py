"""Documents for people, independent of layout, with renderers for terminals, pages, GitHub and notebooks."""
