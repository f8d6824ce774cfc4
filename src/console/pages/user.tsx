import { call, path } from '../api.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge } from '../parts/badge.tsx'
import { Moment } from '../parts/moment.tsx'
import { Card, Facts, Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Table } from '../parts/table.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { to } from '../router.ts'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'
import { UserActions } from './user-actions.tsx'
import { UserMedia } from './user-media.tsx'
import { type User, UserBadges } from './users.tsx'

/** Details give seconds where lists give milliseconds. */
const toMs = (time: number) => (time < 100_000_000_000 ? time * 1000 : time)

const TABS = [
  ['', t('Account')],
  ['devices', t('Sessions')],
  ['rooms', t('Rooms')],
  ['media', t('Media')],
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
        label={t('Parts of this account')}
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
    <Card title={t('Account')}>
      <Facts
        list={[
          [t('Display name'), user.displayname && <bdi>{user.displayname}</bdi>],
          [t('Created'), <Moment at={toMs(user.creation_ts)} />],
          [t('Last seen'), <Moment at={user.last_seen_ts} />],
          [
            t('Addresses'),
            user.threepids.length === 0 ? t('none') : user.threepids.map(({ address }) => address).join(', '),
          ],
          [
            t('Signs in with'),
            user.external_ids.length === 0
              ? t('a password')
              : user.external_ids
                  .map(({ auth_provider, external_id }) => `${auth_provider}: ${external_id}`)
                  .join(', '),
          ],
          [t('What was done here'), <a href={to(['acts'], { target: user.name })}>{t('record of acts')}</a>],
        ]}
      />
    </Card>
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
    const title = t('End the session of {device}?', { device: display_name ?? device_id })
    if ((await ask({ title, verb: t('End it'), isGrave: true })) === undefined) return
    if (
      await run(t('The session has ended.'), () =>
        call('DELETE', path`/_synapse/admin/v2/users/${userId}/devices/${device_id}`),
      )
    )
      devices.reload()
  }

  return (
    <Shown of={devices}>
      {({ devices: rows }) => (
        <Table
          label={t('Sessions')}
          rows={rows}
          keyOf={(device) => device.device_id}
          empty={t('Signed in nowhere.')}
          columns={[
            {
              title: t('Device'),
              isHeading: true,
              cell: ({ device_id, display_name }) => (
                <>
                  <bdi>{display_name ?? device_id}</bdi>
                  {display_name !== null && <span class="soft block">{device_id}</span>}
                </>
              ),
            },
            { title: t('Last seen'), cell: ({ last_seen_ts }) => <Moment at={last_seen_ts} /> },
            { title: t('Address'), cell: ({ last_seen_ip }) => last_seen_ip ?? '–' },
            {
              title: t('App'),
              cell: ({ last_seen_user_agent }) => <span class="soft clip">{last_seen_user_agent ?? '–'}</span>,
            },
            {
              title: t('Act'),
              cell: (device) => (
                <button type="button" class="quiet small" disabled={isBusy} onClick={() => void end(device)}>
                  {t('End')}
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
          label={t('Rooms')}
          rows={Object.entries(found)}
          keyOf={([room]) => room}
          empty={t('In no room.')}
          columns={[
            { title: t('Room'), isHeading: true, cell: ([room]) => <a href={to(['rooms', room])}>{room}</a> },
            {
              title: t('Membership'),
              cell: ([, membership]) => <Badge tone={membership === 'ban' ? 'bad' : 'plain'}>{membership}</Badge>,
            },
          ]}
        />
      )}
    </Shown>
  )
}
