import { call, path } from '../api.ts'
import { facts } from '../facts.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Card, Facts, Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { to } from '../router.ts'
import { type Loaded, useData } from '../use-data.ts'
import { UserMedia } from './user-media.tsx'
import { UserBadges, type UserRow } from './users.tsx'

interface User extends UserRow {
  readonly threepids: readonly { readonly medium: string; readonly address: string }[]
  readonly external_ids: readonly { readonly auth_provider: string; readonly external_id: string }[]
}

/** Details give seconds where lists give milliseconds. */
const toMs = (time: number) => (time < 100_000_000_000 ? time * 1000 : time)

const TABS = [
  ['', 'Account'],
  ['devices', 'Sessions'],
  ['rooms', 'Rooms'],
  ['media', 'Media'],
] as const

export function UserPage({ userId, tab }: { readonly userId: string; readonly tab: string }) {
  const user = useData<User>(path`/_synapse/admin/v2/users/${userId}`)
  return (
    <Page
      title={userId}
      words={user.data && <UserBadges user={user.data} />}
      actions={user.data && <UserActions user={user.data} of={user} />}
    >
      <Tabs
        label="Parts of this account"
        tabs={TABS}
        current={tab}
        addressOf={(id) => to(['users', userId], { tab: id })}
      />
      {tab === 'devices' ? (
        <Devices userId={userId} />
      ) : tab === 'rooms' ? (
        <Memberships userId={userId} />
      ) : tab === 'media' ? (
        <UserMedia userId={userId} />
      ) : (
        <Shown of={user}>{(data) => <Account user={data} />}</Shown>
      )}
    </Page>
  )
}

function Account({ user }: { readonly user: User }) {
  return (
    <Card title="Account">
      <Facts
        list={[
          ['Display name', user.displayname],
          ['Created', <Moment at={toMs(user.creation_ts)} />],
          ['Last seen', <Moment at={user.last_seen_ts} />],
          ['Addresses', user.threepids.length === 0 ? 'none' : user.threepids.map(({ address }) => address).join(', ')],
          [
            'Signs in with',
            user.external_ids.length === 0
              ? 'a password'
              : user.external_ids
                  .map(({ auth_provider, external_id }) => `${auth_provider}: ${external_id}`)
                  .join(', '),
          ],
          ['What was done here', <a href={to(['acts'], { target: user.name })}>record of acts</a>],
        ]}
      />
    </Card>
  )
}

function UserActions({ user, of }: { readonly user: User; readonly of: Loaded<User> }) {
  const { ask, run, isBusy } = useActing()
  const id = user.name
  const isSelf = id === facts.user_id

  async function act(done: string, work: () => Promise<unknown>): Promise<void> {
    if (await run(done, work)) of.reload()
  }

  async function lock(): Promise<void> {
    const locked = !user.locked
    await act(locked ? `${id} is locked.` : `${id} is unlocked.`, () =>
      call('PUT', path`/_matrix/client/v1/admin/lock/${id}`, { locked }),
    )
  }

  async function suspend(): Promise<void> {
    const suspended = !user.suspended
    await act(suspended ? `${id} is suspended: they can read, and not write.` : `${id} may write again.`, () =>
      call('PUT', path`/_matrix/client/v1/admin/suspend/${id}`, { suspended }),
    )
  }

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

  if (user.deactivated || isSelf) return null
  return (
    <>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void suspend()}>
        {user.suspended ? 'Release' : 'Suspend'}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void lock()}>
        {user.locked ? 'Unlock' : 'Lock'}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void resetPassword()}>
        Reset password
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void logOut()}>
        End sessions
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void setAdmin()}>
        {user.admin ? 'No administrator' : 'Make administrator'}
      </button>
      <button type="button" class="quiet grave" disabled={isBusy} onClick={() => void deactivate()}>
        Deactivate
      </button>
    </>
  )
}

interface Device {
  readonly device_id: string
  readonly display_name: string | null
  readonly last_seen_ts: number | null
  readonly last_seen_ip: string | null
  readonly last_seen_user_agent: string | null
}

function Devices({ userId }: { readonly userId: string }) {
  const devices = useData<{ devices: Device[] }>(path`/_synapse/admin/v2/users/${userId}/devices`)
  const { ask, run, isBusy } = useActing()

  async function end({ device_id, display_name }: Device): Promise<void> {
    const title = `End the session of ${display_name ?? device_id}?`
    if ((await ask({ title, verb: 'End it', isGrave: true })) === undefined) return
    if (
      await run('The session has ended.', () =>
        call('DELETE', path`/_synapse/admin/v2/users/${userId}/devices/${device_id}`),
      )
    )
      devices.reload()
  }

  return (
    <Shown of={devices}>
      {({ devices: rows }) => (
        <Table
          label="Sessions"
          rows={rows}
          keyOf={(device) => device.device_id}
          empty="Signed in nowhere."
          columns={[
            {
              title: 'Device',
              isHeading: true,
              cell: ({ device_id, display_name }) => (
                <>
                  {display_name ?? device_id}
                  {display_name !== null && <span class="soft block">{device_id}</span>}
                </>
              ),
            },
            { title: 'Last seen', cell: ({ last_seen_ts }) => <Moment at={last_seen_ts} /> },
            { title: 'Address', cell: ({ last_seen_ip }) => last_seen_ip ?? '–' },
            {
              title: 'App',
              cell: ({ last_seen_user_agent }) => <span class="soft clip">{last_seen_user_agent ?? '–'}</span>,
            },
            {
              title: 'Act',
              cell: (device) => (
                <button type="button" class="quiet small" disabled={isBusy} onClick={() => void end(device)}>
                  End
                </button>
              ),
            },
          ]}
        />
      )}
    </Shown>
  )
}

function Memberships({ userId }: { readonly userId: string }) {
  const memberships = useData<{ memberships: Record<string, string> }>(
    path`/_synapse/admin/v1/users/${userId}/memberships`,
  )
  return (
    <Shown of={memberships}>
      {({ memberships: found }) => (
        <Table
          label="Rooms"
          rows={Object.entries(found)}
          keyOf={([room]) => room}
          empty="In no room."
          columns={[
            { title: 'Room', isHeading: true, cell: ([room]) => <a href={to(['rooms', room])}>{room}</a> },
            {
              title: 'Membership',
              cell: ([, membership]) => <Badge tone={membership === 'ban' ? 'bad' : 'plain'}>{membership}</Badge>,
            },
          ]}
        />
      )}
    </Shown>
  )
}
