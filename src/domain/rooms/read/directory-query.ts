export interface DirectoryQuery {
  /** The server whose directory is requested; by default this one. */
  readonly server?: string | undefined
  /** A network of an application service. */
  readonly network?: string | undefined
  /** Whether to include the rooms of all networks. */
  readonly allNetworks?: boolean | undefined
  readonly limit?: number | undefined
  /** `next_batch` or `prev_batch` of an earlier answer. */
  readonly since?: string | undefined
  /** A text to find in name, topic or alias. */
  readonly term?: string | undefined
  /** Room types; null stands for rooms without a type. */
  readonly types?: readonly (string | null)[] | undefined
}
