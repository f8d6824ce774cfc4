-- Finds the users who ignore others: all who do are read at the start.

CREATE INDEX account_data_ignored ON account_data (user_nid) WHERE room_id = '' AND type = 'm.ignored_user_list';
