import type { Logger } from 'pino'
import type { ServerName } from '../../core/ids.ts'
import type { SigningKey } from '../../core/signing/key.ts'
import type { Peers } from '../../outbound/peers.ts'
import type { Database } from '../../store/db/db.ts'
import type { Clock, Random } from '../clock.ts'
import type { Metrics } from '../metrics.ts'
import type { Users } from '../users.ts'
import { createGuestRooms, createGuests, type Guests } from './act/guests.ts'
import { createSuccessions, type SettingsCarrier, type Successions } from './act/upgrade/successions.ts'
import { type Branches, createBranches } from './room/branches.ts'
import type { RoomBase } from './room-base-services.ts'
import { type Appender, createAppender } from './write/append.ts'
import { type ClosedRooms, createClosedRooms } from './write/closed-rooms.ts'
import { type CommitMemory, type CommitSubscribers, createCommitListeners } from './write/commit-listeners.ts'
import { createNoticing, type Noticing } from './write/noticing.ts'
import { openPersister, type Persister } from './write/persister.ts'
import { createPolicyGate, type PolicyGate } from './write/policy-gate.ts'
import { createPolicyRequests } from './write/policy-requests.ts'

/** How events are written. */
export interface WritingServices {
  readonly persister: Persister
  readonly branches: Branches
  /** Refuses rooms that are being removed. */
  readonly appender: Appender
  /** Also writes in rooms that are being removed. */
  readonly unguarded: Appender
  readonly closed: ClosedRooms
  readonly guests: Guests
  readonly successions: Successions
  /** Asks the policy servers of rooms about each event. */
  readonly policies: PolicyGate
  /** Decides for whom events stand out. */
  readonly noticing: Noticing
}

export interface WritingParts {
  readonly serverName: ServerName
  readonly db: Database
  readonly users: Users
  readonly signingKey: SigningKey
  readonly clock: Clock
  readonly random: Random
  readonly metrics: Metrics
  readonly log: Logger
  readonly peers: Pick<Peers, 'signByPolicy'>
  readonly roomBase: RoomBase
  readonly roomSettings: SettingsCarrier
  readonly directory: CommitMemory['directory']
  readonly presence: CommitMemory['presence']
  readonly typing: CommitMemory['typing']
  readonly outgoing: CommitSubscribers['outgoing']
  readonly appservices: CommitSubscribers['appservices']
  readonly newNeighbours: CommitSubscribers['newNeighbours']
  readonly notifier: CommitSubscribers['notifier']
}

/** Wires the one writer of events. The listeners of its commits are made before it. */
export async function openWritingServices(parts: WritingParts): Promise<WritingServices> {
  const { serverName, db, users, signingKey, clock, random, metrics, log, roomBase } = parts
  const { directory, presence, typing, outgoing, appservices, newNeighbours, notifier } = parts
  const { events, registry, partialStateRooms, userRooms, roomEvents, roomMembers, unread, checkpoints } = roomBase
  const { sticky, stickyAppeals } = roomBase
  const guestRooms = createGuestRooms()
  const successions = createSuccessions({ registry, settings: parts.roomSettings, log })
  const { committed, published, refused, missed } = createCommitListeners(
    {
      registry,
      events,
      partialStateRooms,
      userRooms,
      roomEvents,
      roomMembers,
      unread,
      checkpoints,
      sticky,
      stickyAppeals,
      directory,
      presence,
      typing,
    },
    {
      guests: guestRooms,
      successions,
      outgoing,
      appservices,
      newNeighbours,
      push: roomBase.pushSignals,
      search: roomBase.searchSignals,
      notifier,
    },
    log,
  )
  const persister = await openPersister({
    node: roomBase.node,
    clock,
    log,
    metrics,
    committed,
    published,
    refused,
    missed,
  })
  const closed = createClosedRooms()
  const policies = createPolicyGate({ serverName, db, ask: createPolicyRequests({ peers: parts.peers, clock }) })
  const noticing = createNoticing({
    pushRules: roomBase.pushRules,
    threadFollowers: roomBase.threadFollowers,
    budget: roomBase.budget,
    db,
    serverName,
  })
  const unguarded = roomBase.restoredRooms.guard(
    createAppender({
      serverName,
      signingKey,
      clock,
      random,
      users,
      events,
      registry,
      persister,
      policies,
      noticing,
    }),
  )
  const appender = closed.guard(unguarded)
  return {
    persister,
    branches: createBranches({ db, persister }),
    appender,
    unguarded,
    closed,
    guests: createGuests({ db, rooms: guestRooms, registry, appender }),
    successions,
    policies,
    noticing,
  }
}
