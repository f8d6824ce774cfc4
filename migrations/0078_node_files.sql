-- Where a node keeps the files of users: nodes of one cluster must keep them in one place.

ALTER TABLE node ADD COLUMN files text NOT NULL DEFAULT '';
