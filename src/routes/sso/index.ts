import type { Endpoint } from '../../http/endpoint.ts'
import { chooseSsoName } from './choose-sso-name.ts'
import { getSsoCallback } from './get-sso-callback.ts'
import { getSsoNamePage } from './get-sso-name-page.ts'
import { getSsoProof } from './get-sso-proof.ts'

/** Pages of single sign-on, beside the client interface's own `C/login/sso/redirect`. */
export const ssoEndpoints: readonly Endpoint[] = [getSsoCallback, getSsoNamePage, chooseSsoName, getSsoProof]
