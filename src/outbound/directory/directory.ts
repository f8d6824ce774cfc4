/** A person in a directory. */
export interface DirectoryPerson {
  /** The user name as the directory spells it. */
  readonly name: string
  readonly displayName: string | undefined
  readonly email: string | undefined
}

/** The directory gave no answer. */
export class DirectoryFailure extends Error {}

export interface Directory {
  /**
   * The person with this name and password; undefined if there is none.
   * @throws DirectoryFailure
   */
  verify(name: string, password: string): Promise<DirectoryPerson | undefined>
}
