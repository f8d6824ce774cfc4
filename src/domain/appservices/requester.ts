import type { Appservice } from './appservice.ts'
import type { HostedAppservice } from './hosted.ts'

/** An application service that acts as itself. */
export interface AppserviceRequester {
  readonly appservice: Appservice
  readonly isUnlimited: true
}

/** A homeserver that has the `hs_token` of a service in this process. */
export interface HostedRequester {
  readonly hosted: HostedAppservice
  readonly isUnlimited: true
}
