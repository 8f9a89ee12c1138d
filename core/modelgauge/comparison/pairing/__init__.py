"""From runs to pairs: the systems that are compared, whether their numbers may be, and which items belong together."""
