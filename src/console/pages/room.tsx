import { useState } from 'preact/hooks'
import { call, path, withQuery } from '../api.ts'
import { count } from '../format.ts'
import { useActing } from '../parts/acting.tsx'
import { Badge } from '../parts/badge.tsx'
import { Card, Facts, Page } from '../parts/page.tsx'
import { Shown } from '../parts/state.tsx'
import { Pager, Table } from '../parts/table.tsx'
import { Tabs } from '../parts/tabs.tsx'
import { go, to } from '../router.ts'
import { useData } from '../use-data.ts'
import { t } from '../words.ts'
import { RoomGraph } from './room-graph.tsx'
import type { RoomRow } from './rooms.tsx'

interface Room extends RoomRow {
  readonly topic: string | null
  readonly avatar: string | null
  readonly joined_local_devices: number
  readonly forgotten: boolean
}

const TABS = [
  ['', t('Room')],
  ['members', t('Members')],
  ['state', t('State')],
  ['graph', t('Event graph')],
] as const

export function RoomPage({ roomId, tab }: { readonly roomId: string; readonly tab: string }) {
  const room = useData<Room>(path`/_synapse/admin/v1/rooms/${roomId}`)
  const title = room.data?.name ?? room.data?.canonical_alias ?? roomId
  return (
    <Page
      title={title}
      words={title === roomId ? undefined : <code>{roomId}</code>}
      actions={room.data && <RoomActions roomId={roomId} title={title} />}
    >
      <Tabs
        label={t('Parts of this room')}
        tabs={TABS}
        current={tab}
        addressOf={(id) => to(['rooms', roomId], { tab: id })}
      />
      {tab === 'members' ? (
        <Members roomId={roomId} />
      ) : tab === 'graph' ? (
        <RoomGraph roomId={roomId} />
      ) : tab === 'state' ? (
        <State roomId={roomId} />
      ) : (
        <Shown of={room}>{(data) => <About room={data} />}</Shown>
      )}
    </Page>
  )
}

function About({ room }: { readonly room: Room }) {
  return (
    <Card title={t('Room')}>
      <Facts
        list={[
          [t('Topic'), room.topic],
          [t('Alias'), room.canonical_alias],
          [
            t('Members'),
            t('{all}, of them {ours} of this server', {
              all: count(room.joined_members),
              ours: count(room.joined_local_members),
            }),
          ],
          [t('Devices here'), count(room.joined_local_devices)],
          [t('Creator'), room.creator && <a href={to(['users', room.creator])}>{room.creator}</a>],
          [t('Version'), room.version],
          [t('Encryption'), room.encryption ?? t('none')],
          [t('Who may join'), room.join_rules],
          [t('Guests'), room.guest_access],
          [t('History'), room.history_visibility],
          [t('In the directory'), room.public ? t('yes') : t('no')],
          [t('Other servers'), room.federatable ? t('may take part') : t('may not take part')],
          [t('Pieces of state'), count(room.state_events)],
        ]}
      />
    </Card>
  )
}

function RoomActions({ roomId, title }: { readonly roomId: string; readonly title: string }) {
  const block = useData<{ block: boolean; user_id?: string }>(path`/_synapse/admin/v1/rooms/${roomId}/block`)
  const { ask, run, isBusy } = useActing()
  const isBlocked = block.data?.block === true

  async function toggleBlock(): Promise<void> {
    const done = isBlocked ? t('The room may be joined again.') : t('Nobody here can join the room any more.')
    const url = path`/_synapse/admin/v1/rooms/${roomId}/block`
    if (await run(done, () => call('PUT', url, { block: !isBlocked }))) block.reload()
  }

  async function makeAdmin(): Promise<void> {
    const answers = await ask({
      title: t('Give somebody all rights in this room'),
      words: <p>{t('An administrator of the room who is at this server does it, without being asked.')}</p>,
      fields: [{ name: 'user', label: t('User id'), hint: t('Such as @alice:example.org') }],
      verb: t('Give the rights'),
    })
    if (answers === undefined) return
    await run(t('{user} has all rights.', { user: answers.user ?? '' }), () =>
      call('POST', path`/_synapse/admin/v1/rooms/${roomId}/make_room_admin`, { user_id: answers.user }),
    )
  }

  async function remove(): Promise<void> {
    const answers = await ask({
      title: t('Delete {room}?', { room: title }),
      words: (
        <p>
          {t(
            'Everybody of this server leaves, and the server forgets the room with all its messages. Other servers keep theirs.',
          )}
        </p>
      ),
      fields: [
        { name: 'block', label: t('Let nobody join it again'), kind: 'checkbox', value: 'yes' },
        { name: 'message', label: t('Message to the members'), isOptional: true },
      ],
      verb: t('Delete the room'),
      isGrave: true,
      confirm: t('delete'),
    })
    if (answers === undefined) return
    const body = {
      block: answers.block === 'yes',
      purge: true,
      ...(answers.message ? { message: answers.message } : {}),
    }
    const isBegun = await run(t('The room is being deleted.'), () =>
      call('DELETE', path`/_synapse/admin/v2/rooms/${roomId}`, body),
    )
    if (isBegun) go(to(['rooms']))
  }

  return (
    <>
      {isBlocked && <Badge tone="bad">{t('blocked')}</Badge>}
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void makeAdmin()}>
        {t('Make somebody admin')}
      </button>
      <button type="button" class="quiet" disabled={isBusy} onClick={() => void toggleBlock()}>
        {isBlocked ? t('Unblock') : t('Block')}
      </button>
      <button type="button" class="quiet grave" disabled={isBusy} onClick={() => void remove()}>
        {t('Delete')}
      </button>
    </>
  )
}

const SIZE = 100

interface Member {
  readonly user_id: string
  readonly membership: string
}

function Members({ roomId }: { readonly roomId: string }) {
  const [from, setFrom] = useState(0)
  const members = useData<{ members: Member[]; total: number }>(
    withQuery(path`/_hearth/admin/v1/rooms/${roomId}/members`, { from, limit: SIZE }),
  )
  return (
    <Shown of={members}>
      {({ members: rows, total }) => (
        <>
          <Table
            label={t('Members')}
            rows={rows}
            keyOf={(member) => member.user_id}
            empty={t('Nobody was ever here.')}
            columns={[
              {
                title: t('User'),
                isHeading: true,
                cell: ({ user_id }) => <a href={to(['users', user_id])}>{user_id}</a>,
              },
              {
                title: t('Membership'),
                cell: ({ membership }) => (
                  <Badge tone={membership === 'ban' ? 'bad' : membership === 'join' ? 'good' : 'plain'}>
                    {membership}
                  </Badge>
                ),
              },
            ]}
          />
          <Pager from={from} shown={rows.length} total={total} size={SIZE} turn={setFrom} />
        </>
      )}
    </Shown>
  )
}

interface StateRow {
  readonly event_id: string
  readonly type: string
  readonly state_key: string
  readonly sender: string
  readonly content: object
}

function State({ roomId }: { readonly roomId: string }) {
  const [from, setFrom] = useState(0)
  const state = useData<{ state: StateRow[]; total: number }>(
    withQuery(path`/_hearth/admin/v1/rooms/${roomId}/state`, { from, limit: SIZE }),
  )
  return (
    <Shown of={state}>
      {({ state: rows, total }) => (
        <>
          <p class="soft">{t('The state now, without its members.')}</p>
          <Table
            label={t('State')}
            rows={rows}
            keyOf={(row) => row.event_id}
            empty={t('No state.')}
            columns={[
              {
                title: t('Type'),
                isHeading: true,
                cell: ({ type, state_key }) => (
                  <>
                    <code>{type}</code>
                    {state_key !== '' && <span class="soft block">{state_key}</span>}
                  </>
                ),
              },
              {
                title: t('Content'),
                cell: ({ content }) => (
                  <details>
                    <summary class="clip">{JSON.stringify(content)}</summary>
                    <pre>{JSON.stringify(content, null, 2)}</pre>
                  </details>
                ),
              },
              { title: t('Sender'), cell: ({ sender }) => <a href={to(['users', sender])}>{sender}</a> },
            ]}
          />
          <Pager from={from} shown={rows.length} total={total} size={SIZE} turn={setFrom} />
        </>
      )}
    </Shown>
  )
}
