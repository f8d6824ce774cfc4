import type { Endpoint } from '../../http/endpoint.ts'
import { cancelInvitation } from './identity/cancel-invitation.ts'
import { eraseIdentityPerson } from './identity/erase-identity-person.ts'
import { listInvitations } from './identity/list-invitations.ts'
import { showIdentityPerson } from './identity/show-identity-person.ts'
import { getConfigChanges } from './server/get-config-changes.ts'
import { getDiagnostics } from './server/get-diagnostics.ts'
import { listActs } from './server/list-acts.ts'

/** Administration of an identity service without a homeserver. Only the command line uses it, because there are no accounts. */
export const identityAdminEndpoints: readonly Endpoint[] = [
  listInvitations,
  cancelInvitation,
  showIdentityPerson,
  eraseIdentityPerson,
  listActs,
  getDiagnostics,
  getConfigChanges,
]
