/** Push rules that a user may make. The server-default rules do not count. */
export const MAX_PUSH_RULES = 2_000

/** Bytes of one rule, as JSON, and of all that a user made or changed. */
export const MAX_PUSH_RULE_BYTES = 4 * 1024
export const MAX_PUSH_RULES_BYTES = 256 * 1024

/** Characters of a rule's id. */
export const MAX_PUSH_RULE_ID_LENGTH = 512

/** Conditions of a rule, and wildcards of a pattern. A longer search costs more than a message is worth. */
export const MAX_PUSH_CONDITIONS = 64
export const MAX_PATTERN_WILDCARDS = 32
