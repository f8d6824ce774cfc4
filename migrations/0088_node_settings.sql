-- What nodes of one cluster compare of their configurations: the name of the process that has the place, a space, and digests by option.

ALTER TABLE node ADD COLUMN settings text;
