-- The server name that every user id in this database carries. One row.
CREATE TABLE server_name (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  name text COLLATE "C" NOT NULL
);
