import { createOpenIdVerifier, type Federation } from '../../outbound/federation.ts'
import type { GuardedClient } from '../../outbound/http.ts'
import type { OpenIdTokens } from '../accounts/openid-tokens.ts'
import type { HomeserverBase } from '../base.ts'
import { createDelayedEvents, type DelayedEvents } from '../delayed-events/delayed-events.ts'
import { createDelayedSending } from '../delayed-events/sending.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import { createLivekit } from './livekit.ts'
import { createRtc, type Rtc } from './rtc.ts'
import { createTurn, type Turn } from './turn.ts'

/** What voice and video calls need of a server. */
export interface CallServices {
  readonly turn: Turn
  readonly rtc: Rtc
  readonly delayedEvents: DelayedEvents
}

export interface CallParts {
  readonly base: Pick<HomeserverBase, 'config' | 'db' | 'clock' | 'random' | 'policy' | 'rateLimits' | 'log'> & {
    /** `near` calls what operators configured; `federation` asks other homeservers. */
    readonly outbound: { readonly near: Pick<GuardedClient, 'request'>; readonly federation: Federation }
  }
  readonly accounts: { readonly openIdTokens: Pick<OpenIdTokens, 'userOf'> }
  readonly roomBase: { readonly registry: Pick<RoomRegistry, 'get'> }
  readonly rooms: { readonly acting: { readonly rooms: Pick<Rooms, 'send' | 'setState'> } }
}

export function createCallServices(parts: CallParts): CallServices {
  const { config, db, clock, random, policy, rateLimits, log, outbound } = parts.base
  const { openIdTokens } = parts.accounts
  const { registry } = parts.roomBase
  const livekit = createLivekit({ config, client: outbound.near, now: clock.now })
  const openIdVerifier = createOpenIdVerifier(outbound.federation)
  const send = createDelayedSending({ db, rateLimits, rooms: parts.rooms.acting.rooms })
  return {
    turn: createTurn({ config, clock }),
    rtc: createRtc({ config, livekit, openIdTokens, openIdVerifier, policy, registry, log }),
    delayedEvents: createDelayedEvents({ config, db, clock, random, log, send }),
  }
}
