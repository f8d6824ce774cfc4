import { ProtocolError } from '../../../core/errors.ts'
import type { Appservice } from '../../../domain/appservices/appservice.ts'
import type { AppserviceRequester } from '../../../domain/appservices/requester.ts'

/** How application services register users, and log in as them. */
export const APPSERVICE_TYPE = 'm.login.application_service'

/** @throws ProtocolError `M_MISSING_TOKEN`, `M_UNKNOWN_TOKEN` */
export function requireAppservice(by: {
  readonly requester: AppserviceRequester | undefined
  readonly hasToken: boolean
}): Appservice {
  if (by.requester !== undefined) return by.requester.appservice
  const errcode = by.hasToken ? 'M_UNKNOWN_TOKEN' : 'M_MISSING_TOKEN'
  throw new ProtocolError(errcode, `${APPSERVICE_TYPE} needs the as_token of an application service.`)
}
