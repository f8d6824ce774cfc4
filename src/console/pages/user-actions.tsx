import { call, path } from '../api.ts'
import { facts } from '../facts.ts'
import { useActing } from '../parts/acting.tsx'
import type { Loaded } from '../use-data.ts'
import type { User } from './users.tsx'

interface Props {
  readonly user: User
  readonly of: Loaded<User>
}

/** What an administrator may do to an account that is not their own. */
export function UserActions({ user, of }: Props) {
  if (user.deactivated || user.name === facts.user_id) return null
  return (
    <>
      <Restraints user={user} of={of} />
      <AccountActs user={user} of={of} />
      <GraveActs user={user} of={of} />
    </>
  )
}

/** Runs an act, and has the account read again after it. */
function useActs({ user, of }: Props) {
  const { ask, run, isBusy } = useActing()
  const act = async (done: string, work: () => Promise<unknown>): Promise<void> => {
    if (await run(done, work)) of.reload()
  }
  return { id: user.name, ask, act, isBusy }
}

/** What can be taken back. */
function Restraints({ user, of }: Props) {
  const { id, ask, act, isBusy } = useActs({ user, of })

  async function suspend(): Promise<void> {
    const suspended = !user.suspended
    await act(suspended ? `${id} is suspended: they can read, and not write.` : `${id} may write again.`, () =>
      call('PUT', path`/_matrix/client/v1/admin/suspend/${id}`, { suspended }),
    )
  }

  async function lock(): Promise<void> {
    const locked = !user.locked
    await act(locked ? `${id} is locked.` : `${id} is unlocked.`, () =>
      call('PUT', path`/_matrix/client/v1/admin/lock/${id}`, { locked }),
    )
  }

  async function shadowBan(): Promise<void> {
    const method = user.shadow_banned ? 'DELETE' : 'POST'
    const title = user.shadow_banned ? 'End the shadow ban?' : `Shadow-ban ${id}?`
    const words = (
      <p>
        {user.shadow_banned ? 'Others see again what they send.' : 'They see what they send, and nobody else does.'}
      </p>
    )
    if ((await ask({ title, words, verb: user.shadow_banned ? 'End it' : 'Shadow-ban', isGrave: true })) === undefined)
      return
    await act('Done.', () => call(method, path`/_synapse/admin/v1/users/${id}/shadow_ban`))
  }

  return (
    <>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void suspend()}>
        {user.suspended ? 'Release' : 'Suspend'}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void lock()}>
        {user.locked ? 'Unlock' : 'Lock'}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void shadowBan()}>
        {user.shadow_banned ? 'End shadow ban' : 'Shadow-ban'}
      </button>
    </>
  )
}

/** The account itself. */
function AccountActs({ user, of }: Props) {
  const { id, ask, act, isBusy } = useActs({ user, of })

  async function resetPassword(): Promise<void> {
    const answers = await ask({
      title: 'Set a new password',
      words: <p>Tell it to {id} on a way that you trust. They can change it on their account page.</p>,
      fields: [
        { name: 'password', label: 'New password', kind: 'password', owner: id },
        { name: 'logout', label: 'End all their sessions', kind: 'checkbox', value: 'yes' },
      ],
      verb: 'Set the password',
    })
    if (answers === undefined) return
    const body = { new_password: answers.password ?? '', logout_devices: answers.logout === 'yes' }
    await act('The password is set.', () => call('POST', path`/_synapse/admin/v1/reset_password/${id}`, body))
  }

  async function logOut(): Promise<void> {
    const title = 'End all sessions?'
    const words = (
      <p>All apps of {id} have to sign in again. Encrypted messages stay readable if they saved their keys.</p>
    )
    if ((await ask({ title, words, verb: 'End them', isGrave: true })) === undefined) return
    await act('All sessions have ended.', () => call('POST', path`/_hearth/admin/v1/users/${id}/logout`))
  }

  async function setAdmin(): Promise<void> {
    const admin = !user.admin
    const title = admin ? 'Make this user an administrator?' : 'Take the right to administer away?'
    const words = (
      <p>{admin ? 'Administrators may do all that this console can do, to everybody.' : `${id} keeps the account.`}</p>
    )
    if ((await ask({ title, words, verb: admin ? 'Make administrator' : 'Take it away', isGrave: true })) === undefined)
      return
    await act('Done.', () => call('PUT', path`/_synapse/admin/v1/users/${id}/admin`, { admin }))
  }

  return (
    <>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void resetPassword()}>
        Reset password
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void logOut()}>
        End sessions
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void setAdmin()}>
        {user.admin ? 'No administrator' : 'Make administrator'}
      </button>
    </>
  )
}

/** What cannot be taken back. */
function GraveActs({ user, of }: Props) {
  const { id, ask, act, isBusy } = useActs({ user, of })

  async function redact(): Promise<void> {
    const words = (
      <p>All that {id} sent is taken away, here and at other servers, in the background. It cannot be undone.</p>
    )
    const question = { title: 'Redact all messages?', words, verb: 'Redact', isGrave: true, confirm: id }
    if ((await ask(question)) === undefined) return
    await act('The messages are being redacted.', () =>
      call('POST', path`/_synapse/admin/v1/user/${id}/redact`, { rooms: [] }),
    )
  }

  async function deactivate(): Promise<void> {
    const answers = await ask({
      title: 'Deactivate this account?',
      words: (
        <p>
          {id} leaves all rooms and loses their sessions, addresses and keys. Nobody can take the name again. This
          cannot be undone.
        </p>
      ),
      fields: [{ name: 'erase', label: 'Also show their messages to nobody new', kind: 'checkbox' }],
      verb: 'Deactivate',
      isGrave: true,
      confirm: id,
    })
    if (answers === undefined) return
    await act(`${id} is deactivated.`, () =>
      call('POST', path`/_synapse/admin/v1/deactivate/${id}`, { erase: answers.erase === 'yes' }),
    )
  }

  return (
    <>
      <button type="button" class="quiet grave" disabled={isBusy} onClick={() => void redact()}>
        Redact messages
      </button>
      <button type="button" class="quiet grave" disabled={isBusy} onClick={() => void deactivate()}>
        Deactivate
      </button>
    </>
  )
}
