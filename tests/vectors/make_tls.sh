#!/bin/sh
# Make the certificates of ca.pem, server.pem and client.pem again, with their keys; for tests alone.
# tests/vectors/make_tls.sh, with OpenSSL 3 (these are of 3.0.19); keys differ from one time to the next.
set -eu
cd "$(dirname "$0")/tls"
cat > ca.conf <<'C'
[ca]
default_ca = tests
[tests]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
policy = names
[names]
commonName = supplied
[ca_extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server_extensions]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[client_extensions]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
C
: > index.txt
for who in ca server client; do
    signer=$([ $who = ca ] && echo -selfsign -keyfile ca.key || echo -cert ca.pem -keyfile ca.key)
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$who of the tests" -keyout $who.key -out $who.csr
    openssl ca -batch -notext -config ca.conf -extensions ${who}_extensions -startdate 20200101000000Z -enddate 21200101000000Z $signer -in $who.csr -out $who.pem
done
openssl ec -aes128 -passout pass:secret -in client.key -out client-with-password.key
rm -f ca.key ca.conf index.txt* *.csr [0-9A-F]*.pem
