import type { Appservice } from './appservice.ts'

/** An application service that speaks for itself. */
export interface AppserviceRequester {
  readonly appservice: Appservice
  readonly isUnlimited: true
}
