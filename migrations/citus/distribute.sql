-- Made by `npm run citus -- --write`. NOT FOR USE: no release runs on it. It distributes the tables of a Hearth over a Citus cluster that obey
-- its rules today; docs/scaling.md says which do not, and what has to change before. It was never run on a Citus.

SELECT create_reference_table('matrix_user');
SELECT create_distributed_table('account_data', 'user_nid', colocate_with => 'none');
SELECT create_distributed_table('counted_from', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('device_list', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('early_redaction', 'room_nid', colocate_with => 'none');
SELECT create_distributed_table('event_gap', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('event_relation', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('held_receipt', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('highlight', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('ignored_event', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('ignored_sender', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('profile_change', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('profile_field', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('push_rules', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('receipt', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('room_filling', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('room_member', 'user_nid', colocate_with => 'account_data');
SELECT create_reference_table('server_name');
SELECT create_distributed_table('state_chain', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('state_change', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('state_checkpoint', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('state_key', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('thread', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('thread_event', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('thread_subscription', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('to_device_txn', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('uncounted_event', 'room_nid', colocate_with => 'early_redaction');
SELECT create_distributed_table('unread_event', 'user_nid', colocate_with => 'account_data');
SELECT create_distributed_table('unread_thread', 'room_nid', colocate_with => 'early_redaction');
