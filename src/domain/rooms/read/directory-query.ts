export interface DirectoryQuery {
  /** The server whose directory is wanted; this one unless said. */
  readonly server?: string | undefined
  /** A network behind an application service. */
  readonly network?: string | undefined
  /** The rooms of all networks too. */
  readonly allNetworks?: boolean | undefined
  readonly limit?: number | undefined
  /** `next_batch` or `prev_batch` of an earlier answer. */
  readonly since?: string | undefined
  /** To be found in name, topic or alias. */
  readonly term?: string | undefined
  /** Types of rooms; null for those that have none. */
  readonly types?: readonly (string | null)[] | undefined
}
