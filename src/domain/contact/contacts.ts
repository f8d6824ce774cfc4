import { ProtocolError } from '../../core/errors.ts'
import { normaliseAddress } from '../../core/threepid.ts'
import { listThreepidBinds, type ThreepidBindRow } from '../../store/accounts/threepid-binds.ts'
import {
  deleteUserThreepid,
  deleteUserThreepids,
  findThreepidOwner,
  insertUserThreepid,
  listUserThreepids,
  type ThreepidOwner,
  type UserThreepidRow,
} from '../../store/accounts/user-threepids.ts'
import { userIdsOf } from '../../store/accounts/users.ts'
import type { Tx } from '../../store/db/db.ts'
import type { UiaProof } from '../accounts/uia-flows.ts'
import type { Random } from '../clock.ts'
import type { SessionProof } from '../identity/session-proofs.ts'
import { MAX_THREEPIDS_PER_USER } from '../limits.ts'
import { type ContactProofs, type ShownThreepid, threepidsIn } from './contact-proofs.ts'
import type { UnbindResult } from './identity-server.ts'
import {
  createThreepidBinds,
  type NamedThreepid,
  type Owner,
  type ThreepidBindParts,
  type ThreepidBinds,
} from './threepid-binds.ts'

/** The addresses of accounts (client-server API, "Adding Account Administrative Contact Information"). */
export interface Contacts extends Pick<ThreepidBinds, 'bind'> {
  list(userNid: number): Promise<UserThreepidRow[]>
  /** Adds to a new account the addresses that its registration has proven. @throws ProtocolError `M_THREEPID_IN_USE` */
  addFrom(tx: Tx, userNid: number, proof: UiaProof): Promise<void>
  /**
   * The owner of the address that was proven for a new password. The account must have had it when it was proven.
   * @throws ProtocolError `M_THREEPID_AUTH_FAILED` if it is nobody's
   */
  ownerOf(proof: UiaProof): Promise<ThreepidOwner>
  /** Adds the address of a validated session. @throws ProtocolError `M_THREEPID_AUTH_FAILED`, `M_THREEPID_IN_USE` */
  add(owner: Owner, proof: SessionProof): Promise<void>
  /**
   * Removes an address from the account, and unbinds it.
   * @param idServer where it is unbound; undefined: wherever it was bound
   */
  remove(owner: Owner, threepid: NamedThreepid, idServer: string | undefined): Promise<UnbindResult>
  /** Unbinds an address, which stays on the account. @throws ProtocolError as `IdentityServers`, if `idServer` is given */
  unbind(owner: Owner, threepid: NamedThreepid, idServer: string | undefined): Promise<UnbindResult>
  /** For a deactivated account: removes and unbinds all its addresses. It succeeds if there is nothing to unbind. */
  removeAll(userNid: number, idServer?: string): Promise<UnbindResult>
}

export function createContacts(
  deps: ThreepidBindParts & { readonly random: Random; readonly proofs: ContactProofs },
): Contacts {
  const { db, clock, random, proofs } = deps
  const binds = createThreepidBinds(deps)

  async function insert(tx: Tx, userNid: number, { medium, address, validatedAt }: ShownThreepid): Promise<void> {
    const row = { medium, address, validated_at: validatedAt, added_at: clock.now() }
    if (await insertUserThreepid(tx, userNid, row, MAX_THREEPIDS_PER_USER)) return
    const owner = await findThreepidOwner(tx, medium, address)
    throw owner === undefined || owner.user_nid === userNid
      ? new ProtocolError('M_THREEPID_DENIED', `An account may have ${MAX_THREEPIDS_PER_USER} addresses.`)
      : new ProtocolError('M_THREEPID_IN_USE', 'This address belongs to another account.')
  }

  return {
    bind: binds.bind,
    list: (userNid) => listUserThreepids(db, userNid),
    async addFrom(tx, userNid, proof) {
      for (const threepid of threepidsIn(proof, 'register')) await insert(tx, userNid, threepid)
    },
    async ownerOf(proof) {
      const [shown] = threepidsIn(proof, 'password')
      if (shown === undefined) throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'No address was confirmed.')
      const owner = await findThreepidOwner(db, shown.medium, shown.address)
      // A proof from before the account had the address proves nothing about the account's owner.
      if (owner === undefined || owner.added_at > shown.validatedAt) {
        throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'No account has had this address since it was confirmed.')
      }
      return owner
    },
    async add({ userNid }, proof) {
      const threepid = await proofs.find(proof)
      if (threepid.purpose !== 'add') {
        throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'This session was begun for another purpose.')
      }
      const once = `add ${userNid} ${random.bytes(8).toString('hex')}`
      await db.tx(async (tx) => {
        if (await proofs.use(tx, threepid.session, once)) return insert(tx, userNid, threepid)
        // The client may have lost the answer to a first call.
        const owner = await findThreepidOwner(tx, threepid.medium, threepid.address)
        if (owner?.user_nid === userNid) return
        throw new ProtocolError('M_THREEPID_AUTH_FAILED', 'This session has been used before.')
      })
    },
    async remove(owner, named, idServer) {
      const threepid = normalised(named)
      const server = idServer === undefined ? undefined : binds.trustedServer(idServer)
      await db.tx((tx) => deleteUserThreepid(tx, owner.userNid, threepid.medium, threepid.address))
      if (idServer === undefined) return binds.unbindTracked(owner, threepid)
      return server === undefined
        ? 'no-support'
        : binds.unbindOne(owner.userId, owner.userNid, { ...threepid, id_server: server })
    },
    async unbind(owner, named, idServer) {
      const threepid = normalised(named)
      return idServer === undefined ? binds.unbindTracked(owner, threepid) : binds.unbindAt(owner, threepid, idServer)
    },
    async removeAll(userNid, idServer) {
      const server = idServer === undefined ? undefined : binds.trustedServer(idServer)
      const [bound, own] = await Promise.all([listThreepidBinds(db, userNid), listUserThreepids(db, userNid)])
      await db.tx((tx) => deleteUserThreepids(tx, userNid))
      const userId = (await userIdsOf(db, [userNid])).get(userNid)
      if (userId === undefined) return 'success'
      const elsewhere = server === undefined ? [] : own.map((each) => ({ ...each, id_server: server }))
      const result = await binds.unbindEach(userId, userNid, [
        ...bound,
        ...elsewhere.filter((each) => !includes(bound, each)),
      ])
      const mayBeBound = bound.length + own.length > 0
      return mayBeBound && idServer !== undefined && server === undefined ? 'no-support' : result
    },
  }
}

function includes(binds: readonly ThreepidBindRow[], { medium, address, id_server }: ThreepidBindRow): boolean {
  return binds.some((each) => each.medium === medium && each.address === address && each.id_server === id_server)
}

function normalised({ medium, address }: NamedThreepid): NamedThreepid {
  const normal = normaliseAddress(medium, address)
  if (normal.includes('\0')) throw new ProtocolError('M_INVALID_PARAM', "Key 'address' holds a NUL character.")
  return { medium, address: normal }
}
