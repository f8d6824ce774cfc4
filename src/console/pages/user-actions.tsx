import { call, path } from '../api.ts'
import { facts } from '../facts.ts'
import { useActing } from '../parts/acting.tsx'
import type { Loaded } from '../use-data.ts'
import { t } from '../words.ts'
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
    await act(
      suspended
        ? t('{user} is suspended: they can read, and not write.', { user: id })
        : t('{user} may write again.', { user: id }),
      () => call('PUT', path`/_matrix/client/v1/admin/suspend/${id}`, { suspended }),
    )
  }

  async function lock(): Promise<void> {
    const locked = !user.locked
    await act(locked ? t('{user} is locked.', { user: id }) : t('{user} is unlocked.', { user: id }), () =>
      call('PUT', path`/_matrix/client/v1/admin/lock/${id}`, { locked }),
    )
  }

  async function shadowBan(): Promise<void> {
    const method = user.shadow_banned ? 'DELETE' : 'POST'
    const title = user.shadow_banned ? t('End the shadow ban?') : t('Shadow-ban {user}?', { user: id })
    const words = (
      <p>
        {user.shadow_banned
          ? t('Others see again what they send.')
          : t('They see what they send, and nobody else does.')}
      </p>
    )
    const verb = user.shadow_banned ? t('End it') : t('Shadow-ban')
    if ((await ask({ title, words, verb, isGrave: true })) === undefined) return
    await act(t('Done.'), () => call(method, path`/_synapse/admin/v1/users/${id}/shadow_ban`))
  }

  return (
    <>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void suspend()}>
        {user.suspended ? t('Release') : t('Suspend')}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void lock()}>
        {user.locked ? t('Unlock') : t('Lock')}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void shadowBan()}>
        {user.shadow_banned ? t('End shadow ban') : t('Shadow-ban')}
      </button>
    </>
  )
}

/** The account itself. */
function AccountActs({ user, of }: Props) {
  const { id, ask, act, isBusy } = useActs({ user, of })

  async function resetPassword(): Promise<void> {
    const answers = await ask({
      title: t('Set a new password'),
      words: (
        <p>{t('Tell it to {user} on a way that you trust. They can change it on their account page.', { user: id })}</p>
      ),
      fields: [
        { name: 'password', label: t('New password'), kind: 'password', owner: id },
        { name: 'logout', label: t('End all their sessions'), kind: 'checkbox', value: 'yes' },
      ],
      verb: t('Set the password'),
    })
    if (answers === undefined) return
    const body = { new_password: answers.password ?? '', logout_devices: answers.logout === 'yes' }
    await act(t('The password is set.'), () => call('POST', path`/_synapse/admin/v1/reset_password/${id}`, body))
  }

  async function logOut(): Promise<void> {
    const title = t('End all sessions?')
    const words = (
      <p>
        {t('All apps of {user} have to sign in again. Encrypted messages stay readable if they saved their keys.', {
          user: id,
        })}
      </p>
    )
    if ((await ask({ title, words, verb: t('End them'), isGrave: true })) === undefined) return
    await act(t('All sessions have ended.'), () => call('POST', path`/_hearth/admin/v1/users/${id}/logout`))
  }

  async function setAdmin(): Promise<void> {
    const admin = !user.admin
    const title = admin ? t('Make this user an administrator?') : t('Take the right to administer away?')
    const words = (
      <p>
        {admin
          ? t('Administrators may do all that this console can do, to everybody.')
          : t('{user} keeps the account.', { user: id })}
      </p>
    )
    const verb = admin ? t('Make administrator') : t('Take it away')
    if ((await ask({ title, words, verb, isGrave: true })) === undefined) return
    await act(t('Done.'), () => call('PUT', path`/_synapse/admin/v1/users/${id}/admin`, { admin }))
  }

  return (
    <>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void resetPassword()}>
        {t('Reset password')}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void logOut()}>
        {t('End sessions')}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void setAdmin()}>
        {user.admin ? t('No administrator') : t('Make administrator')}
      </button>
    </>
  )
}

/** What cannot be taken back. */
function GraveActs({ user, of }: Props) {
  const { id, ask, act, isBusy } = useActs({ user, of })

  async function redact(): Promise<void> {
    const words = (
      <p>
        {t('All that {user} sent is taken away, here and at other servers, in the background. It cannot be undone.', {
          user: id,
        })}
      </p>
    )
    const question = { title: t('Redact all messages?'), words, verb: t('Redact'), isGrave: true, confirm: id }
    if ((await ask(question)) === undefined) return
    await act(t('The messages are being redacted.'), () =>
      call('POST', path`/_synapse/admin/v1/user/${id}/redact`, { rooms: [] }),
    )
  }

  async function deactivate(): Promise<void> {
    const answers = await ask({
      title: t('Deactivate this account?'),
      words: (
        <p>
          {t(
            '{user} leaves all rooms and loses their sessions, addresses and keys. None of that can be brought back. Nobody else can take the name.',
            { user: id },
          )}
        </p>
      ),
      fields: [{ name: 'erase', label: t('Also show their messages to nobody new'), kind: 'checkbox' }],
      verb: t('Deactivate'),
      isGrave: true,
      confirm: id,
    })
    if (answers === undefined) return
    await act(t('{user} is deactivated.', { user: id }), () =>
      call('POST', path`/_synapse/admin/v1/deactivate/${id}`, { erase: answers.erase === 'yes' }),
    )
  }

  return (
    <>
      <button type="button" class="quiet grave" disabled={isBusy} onClick={() => void redact()}>
        {t('Redact messages')}
      </button>
      <button type="button" class="quiet grave" disabled={isBusy} onClick={() => void deactivate()}>
        {t('Deactivate')}
      </button>
    </>
  )
}
