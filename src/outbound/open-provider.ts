import type { GuardedClient } from './http.ts'
import type { OpenIdProvider, ProviderClient } from './openid-provider.ts'

/** One OpenID Connect provider. The library is loaded when somebody signs in there. */
export function openProvider(
  client: ProviderClient,
  deps: { readonly client: Pick<GuardedClient, 'request'>; readonly now: () => number },
): OpenIdProvider {
  let loaded: Promise<OpenIdProvider> | undefined
  const flow = (): Promise<OpenIdProvider> => {
    loaded ??= import('./openid-code-flow.ts').then(({ openCodeFlow }) => openCodeFlow(client, deps))
    return loaded
  }
  return {
    authorizationUrl: async (...wish) => (await flow()).authorizationUrl(...wish),
    redeem: async (...answer) => (await flow()).redeem(...answer),
  }
}
