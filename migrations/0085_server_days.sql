-- The days on which this server ran, of the newest some: devices that nobody uses are removed after so many of these, not of the calendar's,
-- so that nobody loses devices because the server was away.

CREATE TABLE server_day (
  -- Days since 1970, UTC.
  day integer PRIMARY KEY
);
