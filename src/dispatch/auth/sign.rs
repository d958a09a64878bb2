//! An assertion, signed. `jsonwebtoken` makes it; the signature itself is ring's, which is here for TLS
//! anyway.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use signature::{Error, Signer};

use super::claims::{Claims, KeyFile};

static RING: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: NO_KEY_SETS };

const NO_KEY_SETS: KeyUtils = KeyUtils::new_unimplemented();

/// A JWT by RS256.
pub(super) fn rs256(claims: &Claims, key: &KeyFile) -> Result<String> {
    // A program that chose its own keeps it.
    if CryptoProvider::try_get_default().is_none() {
        let _ = RING.install_default();
    }
    let mut header = Header::new(Algorithm::RS256);
    header.kid.clone_from(&key.private_key_id);
    let key = EncodingKey::from_rsa_pem(key.private_key.as_bytes())?;
    jsonwebtoken::encode(&header, claims, &key)
}

struct Rs256(RsaKeyPair);

impl Signer<Vec<u8>> for Rs256 {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let mut signature = vec![0; self.0.public().modulus_len()];
        let random = SystemRandom::new();
        let signed = self.0.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature);
        signed.map_err(|_| Error::new())?;
        Ok(signature)
    }
}

impl JwtSigner for Rs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    if *algorithm != Algorithm::RS256 {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    let unfit = |error: ring::error::KeyRejected| ErrorKind::InvalidRsaKey(error.to_string());
    let pair = RsaKeyPair::from_der(key.as_bytes()).map_err(unfit)?;
    Ok(Box::new(Rs256(pair)))
}

/// Nothing is verified here.
fn verifier(_: &Algorithm, _: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    Err(ErrorKind::InvalidAlgorithm.into())
}
