"""What several tests take of the private modules of keygroups, each name once.

A module that moves is followed here, and in no test. What has a public door comes through that.
A name that one file alone takes is imported there, but for serializers, which are all here.
"""
