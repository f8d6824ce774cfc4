import { ProtocolError } from '../../core/errors.ts'
import { lockAccount, setPasswordHash } from '../../store/accounts/accounts.ts'
import { deleteLoginTokensOf } from '../../store/accounts/login-tokens.ts'
import type { Database } from '../../store/db/db.ts'
import { CONTACT_STAGES } from '../contact/contact-proofs.ts'
import type { Contacts } from '../contact/contacts.ts'
import type { Devices } from './devices.ts'
import type { Logins } from './logins.ts'
import type { Passwords } from './passwords.ts'
import type { Requester } from './requester.ts'
import type { UiaFlow, UiaProof } from './uia-flows.ts'

/** Changes passwords, for users who know theirs and for those who have forgotten it (client-server API, "Password management"). */
export interface PasswordChanges {
  /** How a user may prove that the account is theirs: by an address of the account, and with a token also as in `Logins.proofsOf`. */
  flows(requester: Requester | undefined): Promise<readonly UiaFlow[]>
  /**
   * Sets the account's password. With `logoutDevices` removes all its devices except the requester's own, whose token stays valid.
   * @throws ProtocolError `M_WEAK_PASSWORD`, `M_THREEPID_AUTH_FAILED`, `M_FORBIDDEN`, `M_USER_DEACTIVATED`
   */
  change(
    requester: Requester | undefined,
    proof: UiaProof,
    wish: { readonly password: string; readonly logoutDevices: boolean },
  ): Promise<void>
}

const BY_ADDRESS: readonly UiaFlow[] = Object.values(CONTACT_STAGES).map((stage) => [stage])

export function createPasswordChanges(deps: {
  readonly db: Database
  readonly passwords: Pick<Passwords, 'checkNew' | 'hash'>
  readonly logins: Pick<Logins, 'proofsOf'>
  readonly devices: Pick<Devices, 'removeAll'>
  readonly contacts: Pick<Contacts, 'ownerOf'>
}): PasswordChanges {
  const { db, passwords, logins, devices, contacts } = deps

  async function ownerOf(requester: Requester | undefined, proof: UiaProof): Promise<number> {
    const isByAddress = BY_ADDRESS.some(([stage = '']) => Object.hasOwn(proof, stage))
    if (requester !== undefined && !isByAddress) return requester.userNid
    const { user_nid } = await contacts.ownerOf(proof)
    if (requester === undefined || requester.userNid === user_nid) return user_nid
    throw new ProtocolError('M_FORBIDDEN', 'This address belongs to another account than the one you are logged in to.')
  }

  return {
    async flows(requester) {
      return [...(requester === undefined ? [] : await logins.proofsOf(requester.userNid)), ...BY_ADDRESS]
    },
    async change(requester, proof, { password, logoutDevices }) {
      const userNid = await ownerOf(requester, proof)
      passwords.checkNew(password)
      const hash = await passwords.hash(password)
      await db.tx(async (tx) => {
        const account = await lockAccount(tx, userNid)
        if (account === undefined || account.is_guest) {
          throw new ProtocolError('M_FORBIDDEN', 'This account cannot have a password.')
        }
        if (account.deactivated_at !== null) {
          throw new ProtocolError('M_USER_DEACTIVATED', 'This account has been deactivated.')
        }
        await setPasswordHash(tx, userNid, hash)
        await deleteLoginTokensOf(tx, userNid)
      })
      if (logoutDevices) await devices.removeAll(userNid, requester?.deviceId)
    },
  }
}
