import type { Logger } from 'pino'
import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { isNewLocalpart, type UserId } from '../../core/ids.ts'
import { type Directory, DirectoryFailure, type DirectoryPerson } from '../../outbound/directory/directory.ts'
import type { OutsideAccounts } from './outside-accounts.ts'

/**
 * Whose name and password these are in the directory; undefined if nobody's.
 *
 * @throws ProtocolError `M_UNKNOWN` (503) when the directory gives no answer, and what `OutsideAccounts` throws
 */
export type LdapPasswords = (name: string, password: string) => Promise<UserId | undefined>

/** Where the account of somebody in the directory is linked to. */
export const LDAP_SOURCE = 'login:ldap'

/** @returns undefined where no directory is configured */
export function createLdapPasswords(deps: {
  readonly config: Pick<Config, 'ldap' | 'server_name'>
  readonly directory: Directory | undefined
  readonly accountOf: OutsideAccounts
  readonly log: Logger
}): LdapPasswords | undefined {
  const { config, directory, accountOf, log } = deps
  if (directory === undefined) return undefined

  async function verify(name: string, password: string): Promise<DirectoryPerson | undefined> {
    try {
      return await directory!.verify(name, password)
    } catch (error) {
      if (!(error instanceof DirectoryFailure)) throw error
      log.warn({ reason: error.message }, 'the LDAP directory gives no answer')
      throw new ProtocolError('M_UNKNOWN', 'Passwords cannot be checked just now. Try again later.', { status: 503 })
    }
  }

  return async (name, password) => {
    // No account can have another name. And a directory takes many for the same person, `alice ` for `alice`, each of which would have
    // attempts of its own.
    if (!isNewLocalpart(name, config.server_name)) return undefined
    const person = await verify(name, password)
    if (person === undefined) return undefined
    const { name: subject, displayName, email } = person
    return accountOf(LDAP_SOURCE, { subject: subject.toLowerCase(), displayName, email }, config.ldap)
  }
}
